module {
  tt.func public @forward(%qkv: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %groups: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %seed: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %log_sums: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %length = arith.constant $length : i32
    %heads = arith.constant $heads : i32
    %scale = arith.constant $scale : f32
    %threshold = arith.constant $threshold : i32
    %factor = arith.constant $factor : f32
    %c63_i32 = arith.constant 63 : i32
    %c2_i32 = arith.constant 2 : i32
    %cst = arith.constant dense<1> : tensor<64xi32>
    %cst_0 = arith.constant dense<15> : tensor<64xi32>
    %cst_1 = arith.constant dense<569420461> : tensor<64xi32>
    %c1_i32 = arith.constant 1 : i32
    %c-749064809_i32 = arith.constant -749064809 : i32
    %c15_i32 = arith.constant 15 : i32
    %c569420461_i32 = arith.constant 569420461 : i32
    %c16_i32 = arith.constant 16 : i32
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<64xf32>
    %c0_i32 = arith.constant 0 : i32
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<64x32x$float>
    %c96_i32 = arith.constant 96 : i32
    %cst_4 = arith.constant dense<-5.000000e+08> : tensor<64xf32>
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<64x32xf32>
    %cst_6 = arith.constant dense<-1.000000e+09> : tensor<64x64xf32>
    %cst_7 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %cst_8 = arith.constant dense<-2147483648> : tensor<64xi32>
    %cst_9 = arith.constant 1.44269502 : f32
    %cst_10 = arith.constant dense<0xFF800000> : tensor<64xf32>
    %cst_11 = arith.constant dense<0> : tensor<64xi32>
    %c2_i64 = arith.constant 2 : i64
    %c64_i32 = arith.constant 64 : i32
    %c32_i32 = arith.constant 32 : i32
    %0 = tt.get_program_id x : i32
    %1 = tt.get_program_id y : i32
    %2 = tt.get_program_id z : i32
    %3 = arith.extsi %2 : i32 to i64
    %4 = arith.muli %heads, %c32_i32 : i32
    %5 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %6 = arith.muli %0, %c64_i32 : i32
    %7 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %8 = tt.splat %6 : i32 -> tensor<64xi32>
    %9 = arith.addi %8, %7 : tensor<64xi32>
    %10 = tt.expand_dims %9 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %11 = tt.splat %length : i32 -> tensor<64x1xi32>
    %12 = arith.cmpi slt, %10, %11 : tensor<64x1xi32>
    %13 = arith.extsi %length : i32 to i64
    %14 = arith.muli %3, %13 : i64
    %15 = arith.muli %heads, %c96_i32 : i32
    %16 = arith.extsi %15 : i32 to i64
    %17 = arith.muli %14, %16 : i64
    %18 = tt.addptr %qkv, %17 : !tt.ptr<$float>, i64
    %19 = arith.muli %1, %c32_i32 : i32
    %20 = tt.addptr %18, %19 : !tt.ptr<$float>, i32
    %21 = arith.muli %3, %c2_i64 : i64
    %22 = arith.muli %21, %13 : i64
    %23 = tt.addptr %groups, %22 : !tt.ptr<i32>, i64
    %24 = tt.splat %15 : i32 -> tensor<64x1xi32>
    %25 = arith.muli %10, %24 : tensor<64x1xi32>
    %26 = tt.splat %20 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
    %27 = tt.addptr %26, %25 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
    %28 = tt.expand_dims %5 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %29 = tt.broadcast %27 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x32x!tt.ptr<$float>>
    %30 = tt.broadcast %28 : tensor<1x32xi32> -> tensor<64x32xi32>
    %31 = tt.addptr %29, %30 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %32 = tt.broadcast %12 : tensor<64x1xi1> -> tensor<64x32xi1>
    %33 = tt.load %31, %32, %cst_3 : tensor<64x32x!tt.ptr<$float>>
    %34 = tt.splat %length : i32 -> tensor<64xi32>
    %35 = arith.cmpi slt, %9, %34 : tensor<64xi32>
    %36 = tt.splat %23 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
    %37 = tt.addptr %36, %9 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    %38 = tt.load %37, %35, %cst_11 : tensor<64x!tt.ptr<i32>>
    %39 = arith.mulf %scale, %cst_9 : f32
    %40 = tt.load %seed : !tt.ptr<i32>
    %41 = arith.shrui %40, %c16_i32 : i32
    %42 = arith.xori %40, %41 : i32
    %43 = arith.muli %42, %c569420461_i32 : i32
    %44 = arith.shrui %43, %c15_i32 : i32
    %45 = arith.xori %43, %44 : i32
    %46 = arith.muli %45, %c-749064809_i32 : i32
    %47 = arith.shrui %46, %c15_i32 : i32
    %48 = arith.xori %46, %47 : i32
    %49 = tt.addptr %seed, %c1_i32 : !tt.ptr<i32>, i32
    %50 = tt.load %49 : !tt.ptr<i32>
    %51 = arith.addi %48, %50 : i32
    %52 = arith.shrui %51, %c16_i32 : i32
    %53 = arith.xori %51, %52 : i32
    %54 = arith.muli %53, %c569420461_i32 : i32
    %55 = arith.shrui %54, %c15_i32 : i32
    %56 = arith.xori %54, %55 : i32
    %57 = arith.muli %56, %c-749064809_i32 : i32
    %58 = arith.shrui %57, %c15_i32 : i32
    %59 = arith.xori %57, %58 : i32
    %60 = arith.muli %2, %heads : i32
    %61 = arith.addi %60, %1 : i32
    %62 = arith.muli %61, %length : i32
    %63 = tt.splat %62 : i32 -> tensor<64xi32>
    %64 = arith.addi %63, %9 : tensor<64xi32>
    %65 = arith.addi %59, %c1_i32 : i32
    %66 = arith.shrui %65, %c16_i32 : i32
    %67 = arith.xori %65, %66 : i32
    %68 = arith.muli %67, %c569420461_i32 : i32
    %69 = arith.shrui %68, %c15_i32 : i32
    %70 = arith.xori %68, %69 : i32
    %71 = arith.muli %70, %c-749064809_i32 : i32
    %72 = arith.shrui %71, %c15_i32 : i32
    %73 = arith.xori %71, %72 : i32
    %74 = tt.splat %73 : i32 -> tensor<64xi32>
    %75 = arith.addi %64, %74 : tensor<64xi32>
    %76 = arith.muli %75, %cst_1 : tensor<64xi32>
    %77 = arith.shrui %76, %cst_0 : tensor<64xi32>
    %78 = arith.xori %76, %77 : tensor<64xi32>
    %79 = arith.ori %78, %cst : tensor<64xi32>
    %80 = tt.expand_dims %79 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %81:3 = scf.for %arg10 = %c0_i32 to %length step %c64_i32 iter_args(%arg11 = %cst_10, %arg12 = %cst_2, %arg13 = %cst_5) -> (tensor<64xf32>, tensor<64xf32>, tensor<64x32xf32>)  : i32 {
      %121 = tt.splat %arg10 : i32 -> tensor<64xi32>
      %122 = arith.addi %121, %7 : tensor<64xi32>
      %123 = tt.expand_dims %122 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %124 = arith.muli %123, %24 : tensor<64x1xi32>
      %125 = tt.broadcast %124 : tensor<64x1xi32> -> tensor<64x32xi32>
      %126 = arith.addi %125, %30 : tensor<64x32xi32>
      %127 = arith.cmpi slt, %123, %11 : tensor<64x1xi32>
      %128 = tt.addptr %20, %4 : !tt.ptr<$float>, i32
      %129 = tt.splat %128 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
      %130 = tt.addptr %129, %126 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
      %131 = tt.broadcast %127 : tensor<64x1xi1> -> tensor<64x32xi1>
      %132 = tt.load %130, %131, %cst_3 : tensor<64x32x!tt.ptr<$float>>
      %133 = arith.muli %heads, %c64_i32 : i32
      %134 = tt.addptr %20, %133 : !tt.ptr<$float>, i32
      %135 = tt.splat %134 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
      %136 = tt.addptr %135, %126 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
      %137 = tt.load %136, %131, %cst_3 : tensor<64x32x!tt.ptr<$float>>
      %138 = arith.cmpi slt, %122, %34 : tensor<64xi32>
      %139 = tt.addptr %23, %length : !tt.ptr<i32>, i32
      %140 = tt.splat %139 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %141 = tt.addptr %140, %122 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %142 = tt.load %141, %138, %cst_8 : tensor<64x!tt.ptr<i32>>
      %143 = tt.trans %132 {order = array<i32: 1, 0>} : tensor<64x32x$float> -> tensor<32x64x$float>
      %144 = tt.dot %33, %143, %cst_7, inputPrecision = tf32 : tensor<64x32x$float> * tensor<32x64x$float> -> tensor<64x64xf32>
      %145 = tt.expand_dims %38 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %146 = tt.expand_dims %142 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %147 = tt.broadcast %145 : tensor<64x1xi32> -> tensor<64x64xi32>
      %148 = tt.broadcast %146 : tensor<1x64xi32> -> tensor<64x64xi32>
      %149 = arith.cmpi eq, %147, %148 : tensor<64x64xi32>
      %150 = arith.select %149, %144, %cst_6 : tensor<64x64xi1>, tensor<64x64xf32>
      %151 = "tt.reduce"(%150) <{axis = 1 : i32}> ({
      ^bb0(%arg14: f32, %arg15: f32):
        %193 = arith.maxnumf %arg14, %arg15 : f32
        tt.reduce.return %193 : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %152 = arith.maxnumf %arg11, %151 : tensor<64xf32>
      %153 = tt.splat %39 : f32 -> tensor<64x64xf32>
      %154 = arith.mulf %150, %153 : tensor<64x64xf32>
      %155 = tt.splat %39 : f32 -> tensor<64xf32>
      %156 = arith.mulf %152, %155 : tensor<64xf32>
      %157 = tt.expand_dims %156 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %158 = tt.broadcast %157 : tensor<64x1xf32> -> tensor<64x64xf32>
      %159 = arith.subf %154, %158 : tensor<64x64xf32>
      %160 = math.exp2 %159 : tensor<64x64xf32>
      %161 = arith.subf %arg11, %152 : tensor<64xf32>
      %162 = arith.mulf %161, %155 : tensor<64xf32>
      %163 = math.exp2 %162 : tensor<64xf32>
      %164 = arith.mulf %arg12, %163 : tensor<64xf32>
      %165 = "tt.reduce"(%160) <{axis = 1 : i32}> ({
      ^bb0(%arg14: f32, %arg15: f32):
        %193 = arith.addf %arg14, %arg15 : f32
        tt.reduce.return %193 : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %166 = arith.addf %164, %165 : tensor<64xf32>
      %167 = arith.addi %59, %c2_i32 : i32
      %168 = arith.shrui %167, %c16_i32 : i32
      %169 = arith.xori %167, %168 : i32
      %170 = arith.muli %169, %c569420461_i32 : i32
      %171 = arith.shrui %170, %c15_i32 : i32
      %172 = arith.xori %170, %171 : i32
      %173 = arith.muli %172, %c-749064809_i32 : i32
      %174 = arith.shrui %173, %c15_i32 : i32
      %175 = arith.xori %173, %174 : i32
      %176 = tt.splat %175 : i32 -> tensor<64xi32>
      %177 = arith.addi %122, %176 : tensor<64xi32>
      %178 = arith.muli %177, %cst_1 : tensor<64xi32>
      %179 = arith.shrui %178, %cst_0 : tensor<64xi32>
      %180 = arith.xori %178, %179 : tensor<64xi32>
      %181 = tt.expand_dims %180 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %182 = tt.broadcast %80 : tensor<64x1xi32> -> tensor<64x64xi32>
      %183 = tt.broadcast %181 : tensor<1x64xi32> -> tensor<64x64xi32>
      %184 = arith.muli %182, %183 : tensor<64x64xi32>
      %185 = tt.splat %threshold : i32 -> tensor<64x64xi32>
      %186 = arith.cmpi uge, %184, %185 : tensor<64x64xi32>
      %187 = arith.select %186, %160, %cst_7 : tensor<64x64xi1>, tensor<64x64xf32>
      %188 = tt.expand_dims %163 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %189 = tt.broadcast %188 : tensor<64x1xf32> -> tensor<64x32xf32>
      %190 = arith.mulf %arg13, %189 : tensor<64x32xf32>
      %191 = arith.truncf %187 : tensor<64x64xf32> to tensor<64x64x$float>
      %192 = tt.dot %191, %137, %190, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x32x$float> -> tensor<64x32xf32>
      scf.yield %152, %166, %192 : tensor<64xf32>, tensor<64xf32>, tensor<64x32xf32>
    }
    %82 = arith.addi %length, %c63_i32 : i32
    %83 = arith.divsi %82, %c64_i32 : i32
    %84 = arith.muli %83, %c64_i32 : i32
    %85 = arith.cmpf ogt, %81#0, %cst_4 : tensor<64xf32>
    %86 = arith.sitofp %length : i32 to f32
    %87 = arith.sitofp %84 : i32 to f32
    %88 = arith.divf %86, %87 : f32
    %89 = tt.splat %88 : f32 -> tensor<64xf32>
    %90 = arith.mulf %81#1, %89 : tensor<64xf32>
    %91 = arith.select %85, %81#1, %90 : tensor<64xi1>, tensor<64xf32>
    %92 = tt.splat %factor : f32 -> tensor<64xf32>
    %93 = arith.divf %92, %91 : tensor<64xf32>
    %94 = tt.expand_dims %93 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    %95 = tt.broadcast %94 : tensor<64x1xf32> -> tensor<64x32xf32>
    %96 = arith.mulf %81#2, %95 : tensor<64x32xf32>
    %97 = arith.extsi %4 : i32 to i64
    %98 = arith.muli %14, %97 : i64
    %99 = arith.extsi %19 : i32 to i64
    %100 = arith.addi %98, %99 : i64
    %101 = tt.addptr %out, %100 : !tt.ptr<$float>, i64
    %102 = tt.splat %4 : i32 -> tensor<64x1xi32>
    %103 = arith.muli %10, %102 : tensor<64x1xi32>
    %104 = tt.splat %101 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
    %105 = tt.addptr %104, %103 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
    %106 = tt.broadcast %105 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x32x!tt.ptr<$float>>
    %107 = tt.addptr %106, %30 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %108 = arith.truncf %96 : tensor<64x32xf32> to tensor<64x32x$float>
    tt.store %107, %108, %32 : tensor<64x32x!tt.ptr<$float>>
    %109 = arith.extsi %heads : i32 to i64
    %110 = arith.muli %3, %109 : i64
    %111 = arith.extsi %1 : i32 to i64
    %112 = arith.addi %110, %111 : i64
    %113 = arith.muli %112, %13 : i64
    %114 = tt.addptr %log_sums, %113 : !tt.ptr<f32>, i64
    %115 = tt.splat %114 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %116 = tt.addptr %115, %9 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %117 = tt.splat %39 : f32 -> tensor<64xf32>
    %118 = arith.mulf %81#0, %117 : tensor<64xf32>
    %119 = math.log2 %91 : tensor<64xf32>
    %120 = arith.addf %118, %119 : tensor<64xf32>
    tt.store %116, %120, %35 : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
