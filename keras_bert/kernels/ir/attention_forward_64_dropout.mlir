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
    %c128_i32 = arith.constant 128 : i32
    %c0_i32 = arith.constant 0 : i32
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<64x64x$float>
    %c192_i32 = arith.constant 192 : i32
    %cst_4 = arith.constant dense<-5.000000e+08> : tensor<64xf32>
    %cst_5 = arith.constant dense<-1.000000e+09> : tensor<64x64xf32>
    %cst_6 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %cst_7 = arith.constant dense<-2147483648> : tensor<64xi32>
    %cst_8 = arith.constant 1.44269502 : f32
    %cst_9 = arith.constant dense<0xFF800000> : tensor<64xf32>
    %cst_10 = arith.constant dense<0> : tensor<64xi32>
    %c2_i64 = arith.constant 2 : i64
    %c64_i32 = arith.constant 64 : i32
    %0 = tt.get_program_id x : i32
    %1 = tt.get_program_id y : i32
    %2 = tt.get_program_id z : i32
    %3 = arith.extsi %2 : i32 to i64
    %4 = arith.muli %heads, %c64_i32 : i32
    %5 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %6 = arith.muli %0, %c64_i32 : i32
    %7 = tt.splat %6 : i32 -> tensor<64xi32>
    %8 = arith.addi %7, %5 : tensor<64xi32>
    %9 = tt.expand_dims %8 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %10 = tt.splat %length : i32 -> tensor<64x1xi32>
    %11 = arith.cmpi slt, %9, %10 : tensor<64x1xi32>
    %12 = arith.extsi %length : i32 to i64
    %13 = arith.muli %3, %12 : i64
    %14 = arith.muli %heads, %c192_i32 : i32
    %15 = arith.extsi %14 : i32 to i64
    %16 = arith.muli %13, %15 : i64
    %17 = tt.addptr %qkv, %16 : !tt.ptr<$float>, i64
    %18 = arith.muli %1, %c64_i32 : i32
    %19 = tt.addptr %17, %18 : !tt.ptr<$float>, i32
    %20 = arith.muli %3, %c2_i64 : i64
    %21 = arith.muli %20, %12 : i64
    %22 = tt.addptr %groups, %21 : !tt.ptr<i32>, i64
    %23 = tt.splat %14 : i32 -> tensor<64x1xi32>
    %24 = arith.muli %9, %23 : tensor<64x1xi32>
    %25 = tt.splat %19 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
    %26 = tt.addptr %25, %24 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
    %27 = tt.expand_dims %5 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %28 = tt.broadcast %26 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x64x!tt.ptr<$float>>
    %29 = tt.broadcast %27 : tensor<1x64xi32> -> tensor<64x64xi32>
    %30 = tt.addptr %28, %29 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %31 = tt.broadcast %11 : tensor<64x1xi1> -> tensor<64x64xi1>
    %32 = tt.load %30, %31, %cst_3 : tensor<64x64x!tt.ptr<$float>>
    %33 = tt.splat %length : i32 -> tensor<64xi32>
    %34 = arith.cmpi slt, %8, %33 : tensor<64xi32>
    %35 = tt.splat %22 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
    %36 = tt.addptr %35, %8 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    %37 = tt.load %36, %34, %cst_10 : tensor<64x!tt.ptr<i32>>
    %38 = arith.mulf %scale, %cst_8 : f32
    %39 = tt.load %seed : !tt.ptr<i32>
    %40 = arith.shrui %39, %c16_i32 : i32
    %41 = arith.xori %39, %40 : i32
    %42 = arith.muli %41, %c569420461_i32 : i32
    %43 = arith.shrui %42, %c15_i32 : i32
    %44 = arith.xori %42, %43 : i32
    %45 = arith.muli %44, %c-749064809_i32 : i32
    %46 = arith.shrui %45, %c15_i32 : i32
    %47 = arith.xori %45, %46 : i32
    %48 = tt.addptr %seed, %c1_i32 : !tt.ptr<i32>, i32
    %49 = tt.load %48 : !tt.ptr<i32>
    %50 = arith.addi %47, %49 : i32
    %51 = arith.shrui %50, %c16_i32 : i32
    %52 = arith.xori %50, %51 : i32
    %53 = arith.muli %52, %c569420461_i32 : i32
    %54 = arith.shrui %53, %c15_i32 : i32
    %55 = arith.xori %53, %54 : i32
    %56 = arith.muli %55, %c-749064809_i32 : i32
    %57 = arith.shrui %56, %c15_i32 : i32
    %58 = arith.xori %56, %57 : i32
    %59 = arith.muli %2, %heads : i32
    %60 = arith.addi %59, %1 : i32
    %61 = arith.muli %60, %length : i32
    %62 = tt.splat %61 : i32 -> tensor<64xi32>
    %63 = arith.addi %62, %8 : tensor<64xi32>
    %64 = arith.addi %58, %c1_i32 : i32
    %65 = arith.shrui %64, %c16_i32 : i32
    %66 = arith.xori %64, %65 : i32
    %67 = arith.muli %66, %c569420461_i32 : i32
    %68 = arith.shrui %67, %c15_i32 : i32
    %69 = arith.xori %67, %68 : i32
    %70 = arith.muli %69, %c-749064809_i32 : i32
    %71 = arith.shrui %70, %c15_i32 : i32
    %72 = arith.xori %70, %71 : i32
    %73 = tt.splat %72 : i32 -> tensor<64xi32>
    %74 = arith.addi %63, %73 : tensor<64xi32>
    %75 = arith.muli %74, %cst_1 : tensor<64xi32>
    %76 = arith.shrui %75, %cst_0 : tensor<64xi32>
    %77 = arith.xori %75, %76 : tensor<64xi32>
    %78 = arith.ori %77, %cst : tensor<64xi32>
    %79 = tt.expand_dims %78 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %80:3 = scf.for %arg10 = %c0_i32 to %length step %c64_i32 iter_args(%arg11 = %cst_9, %arg12 = %cst_2, %arg13 = %cst_6) -> (tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>)  : i32 {
      %120 = tt.splat %arg10 : i32 -> tensor<64xi32>
      %121 = arith.addi %120, %5 : tensor<64xi32>
      %122 = tt.expand_dims %121 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %123 = arith.muli %122, %23 : tensor<64x1xi32>
      %124 = tt.broadcast %123 : tensor<64x1xi32> -> tensor<64x64xi32>
      %125 = arith.addi %124, %29 : tensor<64x64xi32>
      %126 = arith.cmpi slt, %122, %10 : tensor<64x1xi32>
      %127 = tt.addptr %19, %4 : !tt.ptr<$float>, i32
      %128 = tt.splat %127 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
      %129 = tt.addptr %128, %125 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
      %130 = tt.broadcast %126 : tensor<64x1xi1> -> tensor<64x64xi1>
      %131 = tt.load %129, %130, %cst_3 : tensor<64x64x!tt.ptr<$float>>
      %132 = arith.muli %heads, %c128_i32 : i32
      %133 = tt.addptr %19, %132 : !tt.ptr<$float>, i32
      %134 = tt.splat %133 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
      %135 = tt.addptr %134, %125 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
      %136 = tt.load %135, %130, %cst_3 : tensor<64x64x!tt.ptr<$float>>
      %137 = arith.cmpi slt, %121, %33 : tensor<64xi32>
      %138 = tt.addptr %22, %length : !tt.ptr<i32>, i32
      %139 = tt.splat %138 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %140 = tt.addptr %139, %121 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %141 = tt.load %140, %137, %cst_7 : tensor<64x!tt.ptr<i32>>
      %142 = tt.trans %131 {order = array<i32: 1, 0>} : tensor<64x64x$float> -> tensor<64x64x$float>
      %143 = tt.dot %32, %142, %cst_6, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      %144 = tt.expand_dims %37 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %145 = tt.expand_dims %141 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %146 = tt.broadcast %144 : tensor<64x1xi32> -> tensor<64x64xi32>
      %147 = tt.broadcast %145 : tensor<1x64xi32> -> tensor<64x64xi32>
      %148 = arith.cmpi eq, %146, %147 : tensor<64x64xi32>
      %149 = arith.select %148, %143, %cst_5 : tensor<64x64xi1>, tensor<64x64xf32>
      %150 = "tt.reduce"(%149) <{axis = 1 : i32}> ({
      ^bb0(%arg14: f32, %arg15: f32):
        %192 = arith.maxnumf %arg14, %arg15 : f32
        tt.reduce.return %192 : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %151 = arith.maxnumf %arg11, %150 : tensor<64xf32>
      %152 = tt.splat %38 : f32 -> tensor<64x64xf32>
      %153 = arith.mulf %149, %152 : tensor<64x64xf32>
      %154 = tt.splat %38 : f32 -> tensor<64xf32>
      %155 = arith.mulf %151, %154 : tensor<64xf32>
      %156 = tt.expand_dims %155 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %157 = tt.broadcast %156 : tensor<64x1xf32> -> tensor<64x64xf32>
      %158 = arith.subf %153, %157 : tensor<64x64xf32>
      %159 = math.exp2 %158 : tensor<64x64xf32>
      %160 = arith.subf %arg11, %151 : tensor<64xf32>
      %161 = arith.mulf %160, %154 : tensor<64xf32>
      %162 = math.exp2 %161 : tensor<64xf32>
      %163 = arith.mulf %arg12, %162 : tensor<64xf32>
      %164 = "tt.reduce"(%159) <{axis = 1 : i32}> ({
      ^bb0(%arg14: f32, %arg15: f32):
        %192 = arith.addf %arg14, %arg15 : f32
        tt.reduce.return %192 : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %165 = arith.addf %163, %164 : tensor<64xf32>
      %166 = arith.addi %58, %c2_i32 : i32
      %167 = arith.shrui %166, %c16_i32 : i32
      %168 = arith.xori %166, %167 : i32
      %169 = arith.muli %168, %c569420461_i32 : i32
      %170 = arith.shrui %169, %c15_i32 : i32
      %171 = arith.xori %169, %170 : i32
      %172 = arith.muli %171, %c-749064809_i32 : i32
      %173 = arith.shrui %172, %c15_i32 : i32
      %174 = arith.xori %172, %173 : i32
      %175 = tt.splat %174 : i32 -> tensor<64xi32>
      %176 = arith.addi %121, %175 : tensor<64xi32>
      %177 = arith.muli %176, %cst_1 : tensor<64xi32>
      %178 = arith.shrui %177, %cst_0 : tensor<64xi32>
      %179 = arith.xori %177, %178 : tensor<64xi32>
      %180 = tt.expand_dims %179 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %181 = tt.broadcast %79 : tensor<64x1xi32> -> tensor<64x64xi32>
      %182 = tt.broadcast %180 : tensor<1x64xi32> -> tensor<64x64xi32>
      %183 = arith.muli %181, %182 : tensor<64x64xi32>
      %184 = tt.splat %threshold : i32 -> tensor<64x64xi32>
      %185 = arith.cmpi uge, %183, %184 : tensor<64x64xi32>
      %186 = arith.select %185, %159, %cst_6 : tensor<64x64xi1>, tensor<64x64xf32>
      %187 = tt.expand_dims %162 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %188 = tt.broadcast %187 : tensor<64x1xf32> -> tensor<64x64xf32>
      %189 = arith.mulf %arg13, %188 : tensor<64x64xf32>
      %190 = arith.truncf %186 : tensor<64x64xf32> to tensor<64x64x$float>
      %191 = tt.dot %190, %136, %189, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      scf.yield %151, %165, %191 : tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>
    }
    %81 = arith.addi %length, %c63_i32 : i32
    %82 = arith.divsi %81, %c64_i32 : i32
    %83 = arith.muli %82, %c64_i32 : i32
    %84 = arith.cmpf ogt, %80#0, %cst_4 : tensor<64xf32>
    %85 = arith.sitofp %length : i32 to f32
    %86 = arith.sitofp %83 : i32 to f32
    %87 = arith.divf %85, %86 : f32
    %88 = tt.splat %87 : f32 -> tensor<64xf32>
    %89 = arith.mulf %80#1, %88 : tensor<64xf32>
    %90 = arith.select %84, %80#1, %89 : tensor<64xi1>, tensor<64xf32>
    %91 = tt.splat %factor : f32 -> tensor<64xf32>
    %92 = arith.divf %91, %90 : tensor<64xf32>
    %93 = tt.expand_dims %92 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    %94 = tt.broadcast %93 : tensor<64x1xf32> -> tensor<64x64xf32>
    %95 = arith.mulf %80#2, %94 : tensor<64x64xf32>
    %96 = arith.extsi %4 : i32 to i64
    %97 = arith.muli %13, %96 : i64
    %98 = arith.extsi %18 : i32 to i64
    %99 = arith.addi %97, %98 : i64
    %100 = tt.addptr %out, %99 : !tt.ptr<$float>, i64
    %101 = tt.splat %4 : i32 -> tensor<64x1xi32>
    %102 = arith.muli %9, %101 : tensor<64x1xi32>
    %103 = tt.splat %100 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
    %104 = tt.addptr %103, %102 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
    %105 = tt.broadcast %104 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x64x!tt.ptr<$float>>
    %106 = tt.addptr %105, %29 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %107 = arith.truncf %95 : tensor<64x64xf32> to tensor<64x64x$float>
    tt.store %106, %107, %31 : tensor<64x64x!tt.ptr<$float>>
    %108 = arith.extsi %heads : i32 to i64
    %109 = arith.muli %3, %108 : i64
    %110 = arith.extsi %1 : i32 to i64
    %111 = arith.addi %109, %110 : i64
    %112 = arith.muli %111, %12 : i64
    %113 = tt.addptr %log_sums, %112 : !tt.ptr<f32>, i64
    %114 = tt.splat %113 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %115 = tt.addptr %114, %8 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %116 = tt.splat %38 : f32 -> tensor<64xf32>
    %117 = arith.mulf %80#0, %116 : tensor<64xf32>
    %118 = math.log2 %90 : tensor<64xf32>
    %119 = arith.addf %117, %118 : tensor<64xf32>
    tt.store %115, %119, %34 : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
