module {
  tt.func public @gelu_backward(%d_out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %x: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %bias: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %d_x: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %sums: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %rows = arith.constant $rows : i32
    %hidden = arith.constant $hidden : i32
    %cst = arith.constant dense<-3.000000e+01> : tensor<16x512xf32>
    %cst_0 = arith.constant dense<3.000000e+01> : tensor<16x512xf32>
    %cst_1 = arith.constant dense<1.59576917> : tensor<16x512xf32>
    %cst_2 = arith.constant dense<4.471500e-02> : tensor<16x512xf32>
    %cst_3 = arith.constant dense<1.000000e+00> : tensor<16x512xf32>
    %cst_4 = arith.constant dense<-1.44269502> : tensor<16x512xf32>
    %cst_5 = arith.constant dense<1.341450e-01> : tensor<16x512xf32>
    %cst_6 = arith.constant dense<0.000000e+00> : tensor<16x512x$float>
    %cst_7 = arith.constant dense<0.000000e+00> : tensor<1x512x$float>
    %cst_8 = arith.constant dense<0.000000e+00> : tensor<16x512xf32>
    %c16_i32 = arith.constant 16 : i32
    %c512_i32 = arith.constant 512 : i32
    %0 = tt.get_program_id x : i32
    %1 = tt.get_num_programs x : i32
    %2 = tt.get_program_id y : i32
    %3 = arith.muli %2, %c512_i32 : i32
    %4 = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
    %5 = tt.expand_dims %4 {axis = 0 : i32} : tensor<512xi32> -> tensor<1x512xi32>
    %6 = tt.splat %3 : i32 -> tensor<1x512xi32>
    %7 = arith.addi %6, %5 : tensor<1x512xi32>
    %8 = tt.splat %hidden : i32 -> tensor<1x512xi32>
    %9 = arith.cmpi slt, %7, %8 : tensor<1x512xi32>
    %10 = tt.splat %bias : !tt.ptr<$float> -> tensor<1x512x!tt.ptr<$float>>
    %11 = tt.addptr %10, %7 : tensor<1x512x!tt.ptr<$float>>, tensor<1x512xi32>
    %12 = tt.load %11, %9, %cst_7 : tensor<1x512x!tt.ptr<$float>>
    %13 = arith.extf %12 : tensor<1x512x$float> to tensor<1x512xf32>
    %14 = arith.muli %0, %c16_i32 : i32
    %15 = arith.muli %1, %c16_i32 : i32
    %16 = scf.for %arg7 = %14 to %rows step %15 iter_args(%arg8 = %cst_8) -> (tensor<16x512xf32>)  : i32 {
      %26 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
      %27 = tt.expand_dims %26 {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
      %28 = tt.splat %arg7 : i32 -> tensor<16x1xi32>
      %29 = arith.addi %28, %27 : tensor<16x1xi32>
      %30 = tt.splat %rows : i32 -> tensor<16x1xi32>
      %31 = arith.cmpi slt, %29, %30 : tensor<16x1xi32>
      %32 = tt.broadcast %31 : tensor<16x1xi1> -> tensor<16x512xi1>
      %33 = tt.broadcast %9 : tensor<1x512xi1> -> tensor<16x512xi1>
      %34 = arith.andi %32, %33 : tensor<16x512xi1>
      %35 = arith.extsi %29 : tensor<16x1xi32> to tensor<16x1xi64>
      %36 = arith.extsi %hidden : i32 to i64
      %37 = tt.splat %36 : i64 -> tensor<16x1xi64>
      %38 = arith.muli %35, %37 : tensor<16x1xi64>
      %39 = arith.extsi %7 : tensor<1x512xi32> to tensor<1x512xi64>
      %40 = tt.broadcast %38 : tensor<16x1xi64> -> tensor<16x512xi64>
      %41 = tt.broadcast %39 : tensor<1x512xi64> -> tensor<16x512xi64>
      %42 = arith.addi %40, %41 : tensor<16x512xi64>
      %43 = tt.splat %x : !tt.ptr<$float> -> tensor<16x512x!tt.ptr<$float>>
      %44 = tt.addptr %43, %42 : tensor<16x512x!tt.ptr<$float>>, tensor<16x512xi64>
      %45 = tt.load %44, %34, %cst_6 : tensor<16x512x!tt.ptr<$float>>
      %46 = arith.extf %45 : tensor<16x512x$float> to tensor<16x512xf32>
      %47 = tt.broadcast %13 : tensor<1x512xf32> -> tensor<16x512xf32>
      %48 = arith.addf %46, %47 : tensor<16x512xf32>
      %49 = arith.maxnumf %48, %cst : tensor<16x512xf32>
      %50 = arith.minnumf %49, %cst_0 : tensor<16x512xf32>
      %51 = arith.mulf %50, %50 : tensor<16x512xf32>
      %52 = arith.mulf %50, %cst_1 : tensor<16x512xf32>
      %53 = arith.mulf %51, %cst_2 : tensor<16x512xf32>
      %54 = arith.addf %53, %cst_3 : tensor<16x512xf32>
      %55 = arith.mulf %52, %54 : tensor<16x512xf32>
      %56 = arith.mulf %55, %cst_4 : tensor<16x512xf32>
      %57 = math.exp2 %56 : tensor<16x512xf32>
      %58 = arith.addf %57, %cst_3 : tensor<16x512xf32>
      %59 = arith.divf %cst_3, %58 : tensor<16x512xf32>
      %60 = arith.mulf %51, %cst_5 : tensor<16x512xf32>
      %61 = arith.addf %60, %cst_3 : tensor<16x512xf32>
      %62 = arith.mulf %61, %cst_1 : tensor<16x512xf32>
      %63 = arith.subf %cst_3, %59 : tensor<16x512xf32>
      %64 = arith.mulf %59, %63 : tensor<16x512xf32>
      %65 = arith.mulf %64, %62 : tensor<16x512xf32>
      %66 = tt.splat %d_out : !tt.ptr<$float> -> tensor<16x512x!tt.ptr<$float>>
      %67 = tt.addptr %66, %42 : tensor<16x512x!tt.ptr<$float>>, tensor<16x512xi64>
      %68 = tt.load %67, %34, %cst_6 : tensor<16x512x!tt.ptr<$float>>
      %69 = arith.extf %68 : tensor<16x512x$float> to tensor<16x512xf32>
      %70 = arith.mulf %48, %65 : tensor<16x512xf32>
      %71 = arith.addf %59, %70 : tensor<16x512xf32>
      %72 = arith.mulf %69, %71 : tensor<16x512xf32>
      %73 = arith.truncf %72 : tensor<16x512xf32> to tensor<16x512x$float>
      %74 = tt.splat %d_x : !tt.ptr<$float> -> tensor<16x512x!tt.ptr<$float>>
      %75 = tt.addptr %74, %42 : tensor<16x512x!tt.ptr<$float>>, tensor<16x512xi64>
      tt.store %75, %73, %34 : tensor<16x512x!tt.ptr<$float>>
      %76 = arith.extf %73 : tensor<16x512x$float> to tensor<16x512xf32>
      %77 = arith.select %34, %76, %cst_8 : tensor<16x512xi1>, tensor<16x512xf32>
      %78 = arith.addf %arg8, %77 : tensor<16x512xf32>
      scf.yield %78 : tensor<16x512xf32>
    }
    %17 = tt.splat %3 : i32 -> tensor<512xi32>
    %18 = arith.addi %17, %4 : tensor<512xi32>
    %19 = tt.splat %hidden : i32 -> tensor<512xi32>
    %20 = arith.cmpi slt, %18, %19 : tensor<512xi32>
    %21 = arith.muli %0, %hidden : i32
    %22 = tt.addptr %sums, %21 : !tt.ptr<f32>, i32
    %23 = tt.splat %22 : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %24 = tt.addptr %23, %18 : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    %25 = "tt.reduce"(%16) <{axis = 0 : i32}> ({
    ^bb0(%arg7: f32, %arg8: f32):
      %26 = arith.addf %arg7, %arg8 : f32
      tt.reduce.return %26 : f32
    }) : (tensor<16x512xf32>) -> tensor<512xf32>
    tt.store %24, %25, %20 : tensor<512x!tt.ptr<f32>>
    tt.return
  }
}
